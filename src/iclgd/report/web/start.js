"use strict";
iclgd.start();
