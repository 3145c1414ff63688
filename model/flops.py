def forward_flops(c,b,l,t): return 2.0*b*l*c.layers*12*c.width**2
